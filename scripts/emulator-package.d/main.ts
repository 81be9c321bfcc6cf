#!/usr/bin/env node
// The program `latchkey-emulator` of the npm package: what `latchkey emulator` is in the hub's program.
import { version } from '../../src/system/version.ts';
import { nodeProblem } from './node-version.ts';

// Before this check, nothing that an older Node.js lacks may be imported by name.
if (nodeProblem !== null) {
  process.stderr.write(`latchkey-emulator: ${nodeProblem}\n`);
  process.exit(1);
}

const { emulatorCommand } = await import('../../src/cli/emulator/emulator.ts');
const { program } = await import('../../src/cli/terminal/output.ts');
const { configureCommand, runProgram } = await import('../../src/cli/terminal/run-program.ts');

program.name = 'latchkey-emulator';
await runProgram(async () => {
  const command = emulatorCommand().name(program.name).version(version(), '--version', 'show the version');
  configureCommand(command);
  return command;
}, process.argv.slice(2));
