import type { installer as english } from '../en/installer.ts';

export const installer: typeof english = {
  skip: 'Zum Inhalt springen',
  signOut: 'Abmelden',
  offline: 'Der Hub antwortet nicht. Diese Seite versucht es weiter.',
  overview: 'Übersicht',
  cancel: 'Abbrechen',
  copy: 'Kopieren',
  copied: 'Kopiert',
};
