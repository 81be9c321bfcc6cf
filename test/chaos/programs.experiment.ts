import { RecipeHome, type RunningRecipe } from '../lan/programs/recipe-home.ts';
import { RECIPES } from '../lan/programs/recipes.ts';
import type { Experiment } from './experiment.ts';

/** The short form of each program is a test: test/release/lan/programs.test.ts. */
export const experiment: Experiment = {
  name: 'Programs of others',
  promise:
    'Programs that take their tokens from the hub by the recipes of docs/programs.md get tokens again after each kill of the hub and each replacement of its CA, without another login.',
  async run(scale) {
    await using home = await RecipeHome.start();
    await using running = new AsyncDisposableStack();
    const programs: RunningRecipe[] = [];
    const figures: Record<string, string | number> = {};
    for (const recipe of RECIPES) {
      const reason = await recipe.skipReason();
      if (reason === null) programs.push(running.use(await home.start(recipe, recipe.trust ? 'elsewhere' : 'local')));
      else figures[`not tried: ${recipe.heading}`] = reason;
    }
    const broken: string[] = [];
    let cycles = 0;
    const wanted = scale.long ? 100 : 1;
    for (; cycles < wanted && broken.length === 0 && !scale.signal.aborted; cycles++) {
      await home.runCycle(programs).catch((error: Error) => broken.push(`cycle ${cycles + 1}: ${error.message}`));
      scale.progress(`${cycles + 1} cycles, ${home.logins - 1} logins more`);
    }
    if (home.logins !== 1) broken.push(`there were ${home.logins - 1} logins more`);
    for (const { recipe, accepted, refused } of programs)
      figures[recipe.heading] = `${accepted.size} tokens, ${refused} requests that the cloud refused`;
    return { figures: { cycles, 'logins more': home.logins - 1, ...figures }, broken };
  },
};
