import { Link, useLocation } from "react-router";
import { Empty } from "../ui/States.tsx";

export function NotFound() {
  const { pathname } = useLocation();
  return (
    <Empty title="There is no such page">
      Nothing lives at <code>{pathname}</code>. <Link to="/">Go to the overview</Link>.
    </Empty>
  );
}
