const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

/** Why this Node.js can't run the emulator, or null; npm only warns about an older one. */
export const nodeProblem =
  major < 22 || (major === 22 && minor < 13)
    ? `this is Node.js ${process.versions.node}, but 22.13 or later is required: install that`
    : null;
