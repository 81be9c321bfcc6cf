// The library `latchkey-emulator` of the npm package. Nothing that an older Node.js lacks may be imported by name: then
// it would say that instead of this.
import { nodeProblem } from './node-version.ts';

if (nodeProblem !== null) throw new Error(`latchkey-emulator: ${nodeProblem}`);

export * from '../../src/emulator/index.ts';
