import type { home as english } from '../en/home.ts';

export const home: typeof english = {
  insecure:
    'Die Seite dieses Hubs hat eine sichere Adresse. Der Browser warnt einmal vor dem Zertifikat: Es ist das eigene des Hubs.',
  goThere: 'Dorthin',
  nothingHere: 'Hier ist nichts',
  nothingHereText: 'Prüfen Sie die Adresse.',
};
