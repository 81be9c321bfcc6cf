#!/usr/bin/env node
import module from 'node:module';
import { isAbsolute, join } from 'node:path';

// npm only warns about an older Node.js. Before this check, nothing that an older one lacks may be imported by name.
if (Number.parseInt(process.versions.node, 10) < 24) {
  process.stderr.write(
    `latchkey: this is Node.js ${process.versions.node}, but 24 or later is required: install that\n`,
  );
  process.exit(1);
}

// Compiled code is cached for the next start, in the folder that systemd gives a service, else in one of the user.
// Node's default is below /tmp, where any user could prepare it. Without a writable folder nothing is cached.
const { CACHE_DIRECTORY, XDG_CACHE_HOME, HOME } = process.env;
const userCache = [XDG_CACHE_HOME, HOME && join(HOME, '.cache')].find(isUsable);
const cache = [CACHE_DIRECTORY?.split(':')[0], userCache && join(userCache, 'latchkey')].find(isUsable);
if (cache !== undefined) module.enableCompileCache(cache);

// An import of node:http evaluates everything that it exports. These three exports, which Latchkey does not use, load
// all of Node's fetch. Without these lines `latchkey status` takes 166 ms of CPU time instead of 149 (`time node
// dist/main.js status`, the median of 60 alternating runs), and a running hub uses 140 MB instead of 128 (`grep VmRSS
// /proc/PID/status`, of 14). Only `--help` and the emulator gain nothing.
const unused = { value: undefined, configurable: true };
Object.defineProperties(process.getBuiltinModule('node:http'), {
  WebSocket: unused,
  CloseEvent: unused,
  MessageEvent: unused,
});

// Of a host with several addresses, Node gives up one that has not connected in 250 ms, and tries the next. A handshake
// over a mobile network, a satellite or a full uplink takes longer, and then never succeeds.
process.getBuiltinModule('node:net').setDefaultAutoSelectFamilyAttemptTimeout(2500);

const { run } = await import('./cli/program.ts');
await run(process.argv.slice(2));

/** The XDG base directory specification says to ignore relative and empty paths. */
function isUsable(path: string | undefined): path is string {
  return path !== undefined && isAbsolute(path);
}
