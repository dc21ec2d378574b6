import { useHealth } from "../api/useHealth.ts";
import { healthLines } from "./healthLines.ts";
import styles from "./Shell.module.css";

/** Shows faults of the installation with their remedies, and objects that a process leaves out. */
export function HealthBanner() {
  const health = useHealth();
  const lines = health ? healthLines(health) : [];
  if (lines.length === 0) return null;
  return (
    <div className={styles.banner} role="alert">
      {lines.map(({ key, title, text }) => (
        <div key={key}>
          <b>{title}</b> {text}
        </div>
      ))}
    </div>
  );
}
