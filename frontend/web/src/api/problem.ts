/** Errors of the REST API: RFC 9457 problem objects, or the lack of any answer. */
import { API_TEXT } from "../i18n/api.ts";

export type FieldError = {
  readonly pointer: string;
  readonly code: string;
  readonly message: string;
  readonly given?: unknown;
  readonly allowed?: unknown;
};

export type ProblemBody = {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly requestId?: string;
  readonly errors?: readonly FieldError[];
  /** The object as it is now, where a write was refused because it knew an older version. */
  readonly current?: unknown;
};

export class ApiProblem extends Error {
  override name = "ApiProblem";
  readonly body: ProblemBody;

  constructor(body: ProblemBody) {
    super(body.detail || body.title);
    this.body = body;
  }

  get status(): number {
    return this.body.status;
  }

  /** The last part of the type URI, e.g. `precondition-failed`. */
  get slug(): string {
    return this.body.type.split("/").at(-1) ?? "";
  }
}

/** Return the problem of a refused response, in general words where its body does not name one. */
export async function readProblem(response: Response): Promise<ApiProblem> {
  const fallback: ProblemBody = {
    type: "about:blank",
    title: response.statusText || API_TEXT.error,
    status: response.status,
    detail: API_TEXT.noReason(response.status),
  };
  try {
    const body = (await response.json()) as Partial<ProblemBody>;
    return new ApiProblem({ ...fallback, ...body, status: response.status });
  } catch {
    return new ApiProblem(fallback);
  }
}

export function unreachable(cause: unknown): ApiProblem {
  const detail = cause instanceof Error ? cause.message : String(cause);
  return new ApiProblem({
    type: "about:blank/unreachable",
    title: API_TEXT.noAnswer,
    status: 0,
    detail: API_TEXT.unreachable(detail),
  });
}

export function noAnswerInTime(): ApiProblem {
  return new ApiProblem({
    type: "about:blank/timeout",
    title: API_TEXT.noAnswer,
    status: 0,
    detail: API_TEXT.timeout,
  });
}
