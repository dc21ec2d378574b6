import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { MemoryRouter } from "react-router";
import type { LiveClient } from "../live/client.ts";
import { LiveProvider } from "../live/react.tsx";
import { silentLive } from "./live.ts";

type Props = { queries?: QueryClient; live?: LiveClient; children: ReactNode };

/** Draws a part of a page with all that it may ask for; a test names what matters to it. */
export function InPage({ queries, live, children }: Props) {
  const [queryClient] = useState(() => queries ?? new QueryClient());
  const [liveClient] = useState(() => live ?? silentLive().live);
  return (
    <MantineProvider env="test">
      <Notifications />
      <QueryClientProvider client={queryClient}>
        <LiveProvider client={liveClient}>
          <MemoryRouter>{children}</MemoryRouter>
        </LiveProvider>
      </QueryClientProvider>
    </MantineProvider>
  );
}
