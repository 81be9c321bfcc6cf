import { document } from './de/document.ts';
import type { Texts } from './en.ts';

export const de: Texts = { language: 'de', document };
