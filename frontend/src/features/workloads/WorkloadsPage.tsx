export function WorkloadsPage() {
  return null;
}
