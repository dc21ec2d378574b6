export function SchedulerPage() {
  return null;
}
