#!/usr/bin/env node
// The program `latchkey-emulator` of the npm package: what `latchkey emulator` is in the hub's program.
import { version } from '../../src/system/version.ts';
import { nodeProblem } from './node-version.ts';

// Before this check, nothing that an older Node.js lacks may be imported by name.
if (nodeProblem !== null) {
  process.stderr.write(`latchkey: ${nodeProblem}\n`);
  process.exit(1);
}

const { emulatorCommand } = await import('../../src/cli/emulator/emulator.ts');
const { configureCommand, runProgram } = await import('../../src/cli/terminal/run-program.ts');

await runProgram(async () => {
  const program = emulatorCommand().name('latchkey-emulator').version(version(), '--version', 'show the version');
  configureCommand(program);
  return program;
}, process.argv.slice(2));
