export function WorkloadPage() {
  return null;
}
