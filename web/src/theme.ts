// Light or dark: as the system has it, unless the user chose.

import { useEffect, useState } from "preact/hooks";

export type Theme = "auto" | "light" | "dark";
const key = "lowwater.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme {
  const value = localStorage.getItem(key);
  return value === "light" || value === "dark" ? value : "auto";
}

/** applyTheme sets the stored theme; called before the first render, so that nothing flashes. */
export function applyTheme(theme: Theme = stored()): void {
  document.documentElement.dataset["theme"] = theme;
  dispatchEvent(new Event("themechange"));
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(stored);
  return [
    theme,
    (next) => {
      localStorage.setItem(key, next);
      setTheme(next);
      applyTheme(next);
    },
  ];
}

/** useThemeVersion changes when colours do; for what draws on a canvas. */
export function useThemeVersion(): number {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    const changed = (): void => setVersion((v) => v + 1);
    addEventListener("themechange", changed);
    system.addEventListener("change", changed);
    return () => {
      removeEventListener("themechange", changed);
      system.removeEventListener("change", changed);
    };
  }, []);
  return version;
}

/** colorOf resolves one of the style sheet's colours for a canvas. */
export function colorOf(name: string, near: HTMLElement): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  near.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}
