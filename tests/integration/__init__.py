"""A whole installation of real processes: sandbox, broker, workers, web."""

import pytest

# The checks live outside a test module, because two folders run them; their asserts shall explain themselves too.
pytest.register_assert_rewrite("tests.integration.end_to_end", "tests.integration.process_kills")
