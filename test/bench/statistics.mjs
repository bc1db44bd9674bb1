/** The middle value; of an even number of values the mean of the middle two. */
export function median(values) {
  return quantile(values, 0.5);
}

/** The value at this share of the way from the least to the most, 0..1; between two, in proportion. */
export function quantile(values, share) {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = Math.floor(place);
  const above = Math.ceil(place);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}

export function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
