/**
 * Return `derive` with its last result remembered.
 *
 * It is computed once for each version of its argument, however many components ask, and the previous result is
 * returned while `isSame` says that the new one is no other: what is derived from that is not computed again either.
 */
export function derivedOnce<A, R>(
  derive: (argument: A) => R,
  isSame: (previous: R, next: R) => boolean = Object.is,
): (argument: A) => R {
  let last: { readonly argument: A; readonly result: R } | null = null;
  return (argument) => {
    if (last !== null && last.argument === argument) return last.result;
    const result = derive(argument);
    last = {
      argument,
      result: last !== null && isSame(last.result, result) ? last.result : result,
    };
    return last.result;
  };
}
