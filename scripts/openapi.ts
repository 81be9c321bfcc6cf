import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openApiDocument as emulatorDocument } from '../src/emulator/openapi/document.ts';
import { openApiDocument as hubDocument } from '../src/lan/openapi/document.ts';
import { version } from '../src/system/version.ts';

/** Example addresses: a running emulator inserts its own. */
const emulator = { base: 'http://127.0.0.1:8080', frontend: 'http://127.0.0.1:8081' };

function write(name: string, document: unknown): void {
  writeFileSync(join(import.meta.dirname, '../docs', name), `${JSON.stringify(document, null, 2)}\n`);
}

write('openapi-emulator.json', emulatorDocument(emulator, version()));
write('openapi-hub.json', hubDocument(version()));
