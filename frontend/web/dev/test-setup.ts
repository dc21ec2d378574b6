import { cleanup } from "@testing-library/react";
import { afterEach } from "vitest";

afterEach(cleanup);

import { configure } from "@testing-library/react";

// A busy machine needs longer than the default second to render a dialog; a passing test never waits that long.
configure({ asyncUtilTimeout: 10_000 });
