/** "seconds 5, rounds 3, workers 2" */
export function parametersOf({ parameters = {} }) {
  return Object.entries(parameters)
    .map(([key, value]) => `${inWords(key)} ${Array.isArray(value) ? value.join(' and ') : value}`)
    .join(', ');
}

/** "Intel Xeon, 2 cores, 8.1 GB, Linux 6.1.0" */
export function machineOf({ machine = {} }) {
  const { cpu, cores, memoryBytes, kernel } = machine;
  return [
    cpu,
    cores && `${cores} core${cores === 1 ? '' : 's'}`,
    memoryBytes && `${(memoryBytes / 1e9).toFixed(1)} GB`,
    kernel && `kernel ${kernel}`,
  ]
    .filter(Boolean)
    .join(', ');
}

/** "Node 24.21.0, nestjs-cluster 0.1.0, …" */
export function versionsOf({ versions = {} }) {
  return Object.entries(versions)
    .map(([name, version]) => `${name === 'node' ? 'Node' : name} ${version}`)
    .join(', ');
}

/** "2026-11-21" */
export function dayOf({ date = '' }) {
  return date.slice(0, 10);
}

function inWords(key) {
  return key.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
