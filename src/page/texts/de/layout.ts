import type * as english from '../en/layout.ts';

export const footer: typeof english.footer = {
  hub: 'Latchkey-Hub',
  hubNamed: (name) => `Latchkey-Hub „${name}“`,
};

export const layout: typeof english.layout = {
  skipLink: 'Zum Inhalt springen',
  signOut: 'Abmelden',
  offline: 'Der Hub antwortet nicht. Diese Seite versucht es weiter.',
  overview: 'Übersicht',
  cancel: 'Abbrechen',
  copy: 'Kopieren',
  copied: 'Kopiert',
};

export const landing: typeof english.landing = {
  httpsOnly:
    'Die Seite dieses Hubs hat eine sichere Adresse. Der Browser warnt einmal vor dem Zertifikat: Es ist das eigene des Hubs.',
  openSecurePage: 'Dorthin',
  notFound: 'Hier ist nichts',
  notFoundText: 'Prüfen Sie die Adresse.',
};

export const shortLink: typeof english.shortLink = {
  waitingForPortal: 'Einen Moment',
  waitingForPortalText: 'Der Hub fragt das Portal gerade nach der Anmeldung. Diese Seite geht von selbst weiter.',
};
