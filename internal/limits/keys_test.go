package limits

import "testing"

// While the kernel copies an element, a program may see any of its words old and any new. At no time is a key valid that neither the old nor the new keys have.
func TestKeysChangeInSteps(t *testing.T) {
	key := func(a, b uint64) RawLnKey { return RawLnKey{Word: [2]uint64{a, b}, Valid: 1} }
	lists := []Keys{
		{}, {Key: [2]RawLnKey{key(1, 2), {}}}, {Key: [2]RawLnKey{{}, key(3, 4)}, Required: 1}, {Key: [2]RawLnKey{key(1, 2), key(3, 4)}, Required: 1},
		{Key: [2]RawLnKey{key(5, 6), key(3, 4)}}, {Key: [2]RawLnKey{key(5, 6), key(7, 8)}, Required: 1},
	}
	for _, from := range lists {
		for _, to := range lists {
			before := from
			for _, step := range steps(from, to) {
				for i := range step.Key {
					for mix := range 8 { // of its three words
						seen := before.Key[i]
						if mix&1 != 0 {
							seen.Word[0] = step.Key[i].Word[0]
						}
						if mix&2 != 0 {
							seen.Word[1] = step.Key[i].Word[1]
						}
						if mix&4 != 0 {
							seen.Valid = step.Key[i].Valid
						}
						if seen.Valid != 0 && seen != from.Key[i] && seen != to.Key[i] {
							t.Errorf("from %+v to %+v: %+v is seen", from, to, seen)
						}
						if from.Key[i] == to.Key[i] && seen != to.Key[i] {
							t.Errorf("from %+v to %+v: a key that stays is seen as %+v", from, to, seen)
						}
					}
				}
				before = step
			}
			if before != to {
				t.Errorf("from %+v to %+v: the last step is %+v", from, to, before)
			}
		}
	}
}
