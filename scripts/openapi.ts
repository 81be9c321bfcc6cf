import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openApiDocument } from '../src/emulator/openapi/document.ts';
import { version } from '../src/system/version.ts';

/** Stands for any: a running emulator puts its own. */
const origins = { base: 'http://127.0.0.1:8080', frontend: 'http://127.0.0.1:8081' };

const file = join(import.meta.dirname, '../docs/openapi-emulator.json');
writeFileSync(file, `${JSON.stringify(openApiDocument(origins, version()), null, 2)}\n`);
