import type * as english from '../en/frame.ts';

export const document: typeof english.document = {
  hub: 'Latchkey-Hub',
  hubNamed: (name) => `Latchkey-Hub „${name}“`,
};

export const installer: typeof english.installer = {
  skip: 'Zum Inhalt springen',
  signOut: 'Abmelden',
  offline: 'Der Hub antwortet nicht. Diese Seite versucht es weiter.',
  overview: 'Übersicht',
  cancel: 'Abbrechen',
  copy: 'Kopieren',
  copied: 'Kopiert',
};

export const home: typeof english.home = {
  insecure:
    'Die Seite dieses Hubs hat eine sichere Adresse. Der Browser warnt einmal vor dem Zertifikat: Es ist das eigene des Hubs.',
  goThere: 'Dorthin',
  nothingHere: 'Hier ist nichts',
  nothingHereText: 'Prüfen Sie die Adresse.',
};

export const shortLink: typeof english.shortLink = {
  asking: 'Einen Moment',
  askingText: 'Der Hub fragt das Portal gerade nach der Anmeldung. Diese Seite geht von selbst weiter.',
};
