"""The main job once more, on a real kube-apiserver: the same checks as on the embedded cluster."""

from __future__ import annotations

import pytest

from tests.integration import test_road as embedded

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

road = embedded.road
# In the order of the original, in which the last ones add pods that the earlier ones do not expect.
test_the_pods_run = embedded.test_the_pods_run_and_carry_what_the_binder_writes
test_events_read_as_in_kai = embedded.test_events_of_a_bound_pod_read_as_in_kai
test_over_quota_says_why = embedded.test_a_non_preemptible_pod_over_quota_says_why
test_pod_groups = embedded.test_pod_groups_have_the_right_name_minimum_class_and_queue
test_queue_status = embedded.test_queue_status_follows_the_pods_up_the_tree
test_bad_objects_are_refused = embedded.test_bad_objects_are_refused_with_their_reason
test_hopeless_work_gets_a_reason = embedded.test_hopeless_work_gets_a_reason_and_others_go_on
