#!/usr/bin/env node
// The program `latchkey-emulator` of the npm package: what `latchkey emulator` is in the hub's program.
import { version } from '../../src/system/version.ts';

// npm only warns about an older Node.js. Before this check, nothing that an older one lacks may be imported by name.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 13)) {
  process.stderr.write(
    `latchkey: this is Node.js ${process.versions.node}, but 22.13 or later is required: install that\n`,
  );
  process.exit(1);
}

const { emulatorCommand } = await import('../../src/cli/emulator/emulator.ts');
const { configureCommand, runProgram } = await import('../../src/cli/terminal/run-program.ts');

await runProgram(async () => {
  const program = emulatorCommand().name('latchkey-emulator').version(version(), '--version', 'show the version');
  configureCommand(program);
  return program;
}, process.argv.slice(2));
