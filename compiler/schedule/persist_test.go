package schedule

import (
	"strings"
	"testing"
)

// TestPersistentBlocksAndStreamKConditions checks persistent blocks, rasterisation and divided sums. Errors give the
// missing condition, and legal schedules are replayed from their traces.
func TestPersistentBlocksAndStreamKConditions(t *testing.T) {
	const product = `tilth-workload 1
input t0 f32[8,64]
input t1 f32[64,8]
sum t2 f32[8,8] over 64 = (mul [t0 i0 r0] [t1 r0 i1])
map t3 f32[8,8] = (add [t2 i0 i1] [t2 i0 i1])
output t3
`
	const bound = "fuse 1 0 1\nsplit 1 2 4 0\nbind 1 3 0\n"
	const walked = bound + "compute-at 0 1 3\npersist 1 3\n"
	for trace, want := range map[string]string{
		walked + "streamk 0 1":                               "",
		"persist 1 3":                                        "persist: stage 1 has no iterator on blocks",
		bound + "persist 1 3\npersist 1 3":                   "persist: stage 1 has its blocks already",
		bound + "persist 1 0":                                "persist: 0 blocks of stage 1 are not between 1 and",
		bound + "persist 1 999999":                           "persist: 999999 blocks of stage 1 are not between 1 and",
		bound + "persist 9 3":                                "persist: there is no stage 9",
		"fuse 1 0 1\nbind 1 2 0\nraster 1 2":                 "",
		bound + "raster 1 2":                                 "raster: stage 1 has no iterator on blocks that was fused of two",
		"fuse 1 0 1\nbind 1 2 0\nraster 1 2\nraster 1 2":     "raster: stage 1 has its bands already",
		"fuse 1 0 1\nbind 1 2 0\nraster 1 1":                 "raster: bands of 1 of stage 1 are not between 2 and",
		bound + "compute-at 0 1 3\nstreamk 0 1":              "streamk: stage 0 is not computed in tiles over which blocks walk",
		bound + "persist 1 3\nstreamk 0 1":                   "streamk: stage 0 is not computed in tiles over which blocks walk",
		bound + "persist 1 3\nstreamk 1 1":                   "streamk: stage 1 is not a reduction whose parts can be combined",
		walked + "streamk 0 0":                               "streamk: 0 rounds of stage 0 are not between 1 and",
		walked + "streamk 0 1\nstreamk 0 1":                  "streamk: stage 0 is cut already",
		bound + "compute-at 0 1 4\npersist 1 3\nstreamk 0 1": "streamk: stage 0 is not computed in tiles over which blocks walk",
		walked + "streamk 7 1":                               "streamk: there is no stage 7",
	} {
		s, err := Replay(parseWorkload(t, product), []byte(traceHeader+"\n"+trace+"\n"))
		switch {
		case want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", trace, err, want)
		case err == nil && string(s.Trace()) != traceHeader+"\n"+trace+"\n":
			t.Errorf("%q is %q when it is printed", trace, s.Trace())
		}
	}
}
