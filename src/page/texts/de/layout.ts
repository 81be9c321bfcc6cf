import type * as english from '../en/layout.ts';

export const footer: typeof english.footer = {
  hub: 'Latchkey-Hub',
  hubNamed: (name) => `Latchkey-Hub „${name}“`,
};

export const installer: typeof english.installer = {
  skipLink: 'Zum Inhalt springen',
  signOut: 'Abmelden',
  offline:
    'Der Hub antwortet nicht. Die Seite versucht weiterhin, ihn zu erreichen. Wenn das so bleibt, prüfen Sie Stromversorgung und Netzwerk des Hubs.',
  overview: 'Übersicht',
  cancel: 'Abbrechen',
  copy: 'Kopieren',
  copied: 'Kopiert',
};

export const landing: typeof english.landing = {
  httpsOnly:
    'Die Seite dieses Hubs hat eine sichere Adresse (https). Der Browser warnt einmal, weil der Hub sein Zertifikat selbst ausgestellt hat. Wählen Sie dort „Erweitert“ (oder „Details“) und fahren Sie fort.',
  openSecurePage: 'Sichere Seite öffnen',
  notFound: 'Seite nicht gefunden',
  notFoundText: 'Prüfen Sie die Adresse.',
};

export const shortLink: typeof english.shortLink = {
  waitingForPortal: 'Einen Moment bitte',
  waitingForPortalText: 'Der Hub fordert beim Portal gerade den Anmeldelink an. Danach geht es automatisch weiter.',
};
