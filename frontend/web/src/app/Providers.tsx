import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { ApiProblem } from "../api/problem.ts";
import type { LiveClient } from "../live/client.ts";
import { LiveProvider } from "../live/react.tsx";
import { usePreferences } from "../ui/preferences.ts";
import { theme } from "./theme.ts";

export function Providers({ live, children }: { live: LiveClient; children: ReactNode }) {
  const [queries] = useState(makeQueryClient);
  const density = usePreferences((state) => state.density);
  useEffect(() => {
    document.documentElement.dataset.density = density;
  }, [density]);
  return (
    <MantineProvider theme={theme} defaultColorScheme="auto">
      {/* At the top, because a form has its buttons at the bottom: on a phone, over the full width. */}
      <Notifications position="top-center" limit={4} />
      <QueryClientProvider client={queries}>
        <LiveProvider client={live}>{children}</LiveProvider>
      </QueryClientProvider>
    </MantineProvider>
  );
}

function makeQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        // Retry after a lost connection or a server error; a refusal would only be repeated.
        retry: (failures, error) =>
          failures < 2 &&
          error instanceof ApiProblem &&
          (error.status === 0 || error.status >= 500),
      },
    },
  });
}
