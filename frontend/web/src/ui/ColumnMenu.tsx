import { ActionIcon, Menu } from "@mantine/core";
import { IconColumns3 } from "@tabler/icons-react";
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
    <Menu
      position="bottom-end"
      width={220}
      shadow="md"
      closeOnItemClick={false}
      // Inside the landmark of its table, but not cut off where that ends.
      withinPortal={false}
      floatingStrategy="fixed"
      withInitialFocusPlaceholder={false}
    >
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
        {columns.slice(1).map(({ key, label }) => (
          <Menu.CheckboxItem key={key} checked={!hidden.includes(key)} onChange={() => toggle(key)}>
            {label}
          </Menu.CheckboxItem>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
