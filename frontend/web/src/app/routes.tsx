import { createBrowserRouter, type RouteObject } from "react-router";
import { NotFound } from "./NotFound.tsx";
import { PageError } from "./PageError.tsx";
import { Shell } from "./Shell.tsx";

// Every page is a chunk of its own, so that a first visit loads only the shell and that page.
const PAGES: RouteObject[] = [
  {
    index: true,
    lazy: async () => ({
      Component: (await import("../features/overview/OverviewPage.tsx")).OverviewPage,
    }),
  },
  {
    path: "queues",
    lazy: async () => ({
      Component: (await import("../features/queues/QueuesPage.tsx")).QueuesPage,
    }),
  },
  {
    path: "workloads",
    lazy: async () => ({
      Component: (await import("../features/workloads/WorkloadsPage.tsx")).WorkloadsPage,
    }),
  },
  {
    path: "workloads/:namespace/:name/:tab?",
    lazy: async () => ({
      Component: (await import("../features/workloads/WorkloadPage.tsx")).WorkloadPage,
    }),
  },
  {
    path: "nodes",
    lazy: async () => ({
      Component: (await import("../features/nodes/NodesPage.tsx")).NodesPage,
    }),
  },
  {
    path: "scheduler",
    lazy: async () => ({
      Component: (await import("../features/scheduler/SchedulerPage.tsx")).SchedulerPage,
    }),
  },
  {
    path: "scheduler/sessions/:id",
    lazy: async () => ({
      Component: (await import("../features/scheduler/SessionPage.tsx")).SessionPage,
    }),
  },
  {
    path: "scheduler/evictions",
    lazy: async () => ({
      Component: (await import("../features/scheduler/EvictionsPage.tsx")).EvictionsPage,
    }),
  },
  {
    path: "scheduler/order",
    lazy: async () => ({
      Component: (await import("../features/scheduler/OrderPage.tsx")).OrderPage,
    }),
  },
  {
    path: "changes",
    lazy: async () => ({
      Component: (await import("../features/changes/ChangesPage.tsx")).ChangesPage,
    }),
  },
  {
    path: "changes/:id",
    lazy: async () => ({
      Component: (await import("../features/changes/ChangePage.tsx")).ChangePage,
    }),
  },
  {
    path: "usage",
    lazy: async () => ({
      Component: (await import("../features/usage/UsagePage.tsx")).UsagePage,
    }),
  },
  {
    path: "queues/:name/history",
    lazy: async () => ({
      Component: (await import("../features/usage/QueueHistoryPage.tsx")).QueueHistoryPage,
    }),
  },
  {
    path: "audit",
    lazy: async () => ({
      Component: (await import("../features/audit/AuditPage.tsx")).AuditPage,
    }),
  },
  {
    path: "simulate/:id?",
    lazy: async () => ({
      Component: (await import("../features/simulate/SimulatePage.tsx")).SimulatePage,
    }),
  },
  {
    path: "settings/:tab?",
    lazy: async () => ({
      Component: (await import("../features/settings/SettingsPage.tsx")).SettingsPage,
    }),
  },
  { path: "*", Component: NotFound },
];

export const router = createBrowserRouter([
  {
    path: "/",
    Component: Shell,
    HydrateFallback: () => null,
    children: [
      {
        ErrorBoundary: PageError,
        children: PAGES,
      },
    ],
  },
]);
