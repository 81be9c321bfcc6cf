import { describe, expect, test } from 'vitest';
import { readSection } from '../../emulator/examples/guide.ts';
import { RecipeHome } from '../../lan/programs/recipe-home.ts';
import { RECIPES } from '../../lan/programs/recipes.ts';
import { scaleDeadline } from '../../support/deadlines.ts';

describe('the programs of docs/programs.md', () => {
  test.for(RECIPES.map((recipe) => [recipe.heading, recipe] as const))(
    '%s gets tokens through refreshes, a kill of the hub and another CA, without another login',
    // The first run installs some programs, and builds Telegraf.
    { timeout: scaleDeadline(360_000) },
    async ([heading, recipe], { skip }) => {
      const reason = await recipe.skipReason();
      skip(reason !== null, String(reason));
      if (recipe.trust !== undefined) expect(readSection(heading, 'docs/programs.md')).toContain(`\`${recipe.trust}\``);
      await using home = await RecipeHome.start();
      await using local = await home.start(recipe, 'local');
      await local.servedAnew();
      await using elsewhere = recipe.trust === undefined ? null : await home.start(recipe, 'elsewhere');
      await home.runCycle(elsewhere === null ? [local] : [local, elsewhere]);
      expect(home.logins).toBe(1);
    },
  );
});
