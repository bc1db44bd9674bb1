/**
 * Colours on GitHub's own background in light and in dark, as its palette has
 * them. Text has a contrast of at least 4.5 to it, bars of at least 3 (WCAG 2.2).
 */
export const THEMES = {
  light: {
    background: '#ffffff',
    text: '#1f2328',
    mutedText: '#59636e',
    accent: '#0969da',
    neutral: '#818b98',
    spread: '#1f2328',
    grid: '#d1d9e0',
  },
  dark: {
    background: '#0d1117',
    text: '#f0f6fc',
    mutedText: '#9198a1',
    accent: '#388bfd',
    neutral: '#656c76',
    spread: '#f0f6fc',
    grid: '#3d444d',
  },
};
