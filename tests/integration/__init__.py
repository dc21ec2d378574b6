"""The whole road, with real processes: sandbox, broker, workers, web."""

import pytest

# The checks live outside a test module, because two folders run them; their asserts shall explain themselves too.
pytest.register_assert_rewrite("tests.integration.road", "tests.integration.kills")
