import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { fireEvent, render, screen, waitFor } from "@testing-library/react";
import { createMemoryRouter, RouterProvider } from "react-router";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { PREVIEW } from "../../i18n/preview.ts";
import { SIMULATE } from "../../i18n/simulate.ts";
import { LiveProvider } from "../../live/react.tsx";
import { silentLive } from "../../testing/live.ts";
import { adminMe } from "../../testing/me.ts";
import { previewAnswer, simulated } from "../../testing/rows.ts";
import { SimulatePage } from "./SimulatePage.tsx";

vi.setConfig({ testTimeout: 30_000 });

const QUESTION = {
  cycles: 2,
  workloads: { add: [{ name: "simulated-1", queue: "vision", pods: 2, minMember: 2, gpu: 8 }] },
};
let sent: unknown[];

beforeEach(() => {
  sent = [];
  const finished = { ...simulated(previewAnswer({})), id: 5, question: QUESTION };
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    const path = url.replace("/api/v1", "");
    if (path === "/me") return Response.json(adminMe());
    if (init.method === "POST") {
      sent.push(JSON.parse(String(init.body)));
      return Response.json({ ...finished, id: 6 });
    }
    return Response.json(path === "/simulations?limit=10" ? { items: [finished] } : finished);
  });
});

afterEach(() => vi.unstubAllGlobals());

it("asks an earlier question again from its link, and shows the new answer under its own", async () => {
  const routes = [{ path: "/simulate/:id?", Component: SimulatePage }];
  const router = createMemoryRouter(routes, { initialEntries: ["/simulate/5"] });
  render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient()}>
        <LiveProvider client={silentLive().live}>
          <RouterProvider router={router} />
        </LiveProvider>
      </QueryClientProvider>
    </MantineProvider>,
  );
  await screen.findByText(PREVIEW.verdicts.safe);
  const pods = screen.getByLabelText<HTMLInputElement>(SIMULATE.pods);
  expect(pods.value).toBe("2");
  fireEvent.change(pods, { target: { value: "4" } });
  fireEvent.click(screen.getByRole("button", { name: SIMULATE.run }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/simulate/6"));
  await screen.findByText(PREVIEW.verdicts.safe);
  expect(sent).toEqual([
    { cycles: 2, workloads: { add: [{ ...QUESTION.workloads.add[0], pods: 4, minMember: 4 }] } },
  ]);
});
