/** Texts for failed requests. */
export const API_TEXT = {
  error: "Error",
  noReason: (status: number) =>
    `The server answered with status ${status} and gave no reason. Try again.`,
  noAnswer: "No answer from the server",
  unreachable: (cause: string) =>
    `The server could not be reached (${cause}). Check the connection and try again.`,
  timeout:
    "The server did not answer within 30 seconds. The change may still have been saved: check the values shown before you save again.",
} as const;
