#!/usr/bin/env node
import module from 'node:module';
import { isAbsolute, join } from 'node:path';

// npm only warns of an older one. Nothing that it does not have may be imported by name before this.
if (Number.parseInt(process.versions.node, 10) < 24) {
  process.stderr.write(`latchkey: this is Node.js ${process.versions.node}, and it takes 24 or later: install that\n`);
  process.exit(1);
}

// Compiled code is kept for the next start, in the folder that systemd gives a service, else in one of the user's own:
// Node's default below /tmp is anybody's to prepare. Where there is none, or it can't be written, nothing is kept.
const { CACHE_DIRECTORY, XDG_CACHE_HOME, HOME } = process.env;
const caches = [XDG_CACHE_HOME, HOME && join(HOME, '.cache')].find(isUsable);
const own = [CACHE_DIRECTORY?.split(':')[0], caches && join(caches, 'latchkey')].find(isUsable);
if (own !== undefined) module.enableCompileCache(own);

// An import of node:http has everything evaluated that it exports: with these three, which nobody here uses, all of Node's
// own fetch. Without these lines a start of `latchkey status` takes 166 ms of processor time instead of 149 (`time node
// dist/main.js status`, the median of 60 in turns), and a hub has 140 MB instead of 128 when it is up (`grep VmRSS
// /proc/PID/status`, of 14). Only `--help` and the emulator gain nothing.
const unused = { value: undefined, configurable: true };
Object.defineProperties(process.getBuiltinModule('node:http'), {
  WebSocket: unused,
  CloseEvent: unused,
  MessageEvent: unused,
});

const { run } = await import('./cli/program.ts');
await run(process.argv.slice(2));

/** The XDG base directory specification has relative paths passed over, and empty ones. */
function isUsable(path: string | undefined): path is string {
  return path !== undefined && isAbsolute(path);
}
