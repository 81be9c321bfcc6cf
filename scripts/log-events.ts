import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { logEventsPage } from './log-events.d/page.ts';

writeFileSync(join(import.meta.dirname, '../docs/log-events.md'), logEventsPage());
