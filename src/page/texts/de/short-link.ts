import type { shortLink as english } from '../en/short-link.ts';

export const shortLink: typeof english = {
  asking: 'Einen Moment',
  askingText: 'Der Hub fragt das Portal gerade nach der Anmeldung. Diese Seite geht von selbst weiter.',
};
