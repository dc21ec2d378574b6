import { ActionIcon, Menu } from "@mantine/core";
import { IconCheck, IconColumns3 } from "@tabler/icons-react";
import { TABLE } from "../i18n/ui.ts";
import type { Column } from "./columns.ts";
import { usePreferences } from "./preferences.ts";

type Props<T> = { table: string; columns: readonly Column<T>[] };

/** Chooses which columns a table shows; the first one stays, because it names the rows. */
export function ColumnMenu<T>({ table, columns }: Props<T>) {
  const { hiddenColumns, set } = usePreferences();
  const hidden = hiddenColumns[table] ?? [];
  const toggle = (key: string) => {
    const next = hidden.includes(key) ? hidden.filter((each) => each !== key) : [...hidden, key];
    set({ hiddenColumns: { ...hiddenColumns, [table]: next } });
  };
  return (
    <Menu position="bottom-end" width={220} shadow="md" closeOnItemClick={false}>
      <Menu.Target>
        <ActionIcon
          variant="subtle"
          color="gray"
          size={30}
          ml="auto"
          aria-label={TABLE.columns}
          title={TABLE.columns}
        >
          <IconColumns3 size={17} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {columns.slice(1).map(({ key, label }) => {
          const isShown = !hidden.includes(key);
          return (
            <Menu.Item
              key={key}
              role="menuitemcheckbox"
              aria-checked={isShown}
              leftSection={isShown ? <IconCheck size={16} /> : <span style={{ width: 16 }} />}
              onClick={() => toggle(key)}
            >
              {label}
            </Menu.Item>
          );
        })}
      </Menu.Dropdown>
    </Menu>
  );
}
