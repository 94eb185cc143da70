package contest

import "testing"

func TestAGuessWithoutAnyOtherWorkloadIsTheDefault(t *testing.T) {
	d := testDevices(t)[0]
	got, err := newPast([]*device{d}, nil, testBatches).guessShare(0)
	if err != nil || got != d.defaultShare() || got <= 0 || got > 1 {
		t.Errorf("%g, %v; want the default's %g", got, err, d.defaultShare())
	}
}

func TestAGuessIsAmongWhatWasMeasured(t *testing.T) {
	p := newPast(testDevices(t), nil, testBatches)
	for k, d := range p.devices {
		if got, err := p.guessShare(k); err != nil || got <= 0 || got > 1 {
			t.Errorf("%s: %g, %v; want a share of the best", d.set.Task, got, err)
		}
	}
}
