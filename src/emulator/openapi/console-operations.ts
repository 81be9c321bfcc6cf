import * as v from 'valibot';
import type { Operation } from './operation.ts';

const NotFound = v.strictObject({ error: v.literal('not_found') });

/** The console page and what it loads. */
export const consoleOperations: readonly Operation[] = [
  {
    method: 'get',
    path: '/_emulator/',
    origin: 'base',
    id: 'console',
    summary: 'The console page',
    answers: { 200: { description: 'For people', body: 'text/html' } },
  },
  {
    method: 'get',
    path: '/_emulator/console.css',
    origin: 'base',
    id: 'consoleStyle',
    summary: "The console page's style",
    answers: { 200: { description: 'For browsers', body: 'text/css' } },
  },
  {
    method: 'get',
    path: '/_emulator/console/{file}',
    origin: 'base',
    id: 'consoleModule',
    summary: "One of the console page's modules",
    params: v.strictObject({ file: v.string() }),
    answers: {
      200: { description: 'For browsers', body: 'text/javascript' },
      404: { description: 'There is no such module', body: NotFound },
    },
  },
];
