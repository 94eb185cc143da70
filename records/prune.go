package records

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// PruneOptions selects the records that pruning keeps. It always keeps the best record of each workload and target at
// each level of numerics, and all records of open jobs.
type PruneOptions struct {
	// KeepBest and KeepRecent are the numbers of the best verified and the newest records to keep for each workload
	// and target.
	KeepBest, KeepRecent int
	// Target and Workload restrict pruning; empty means all.
	Target, Workload string
}

// Outline is what pruning needs of a record. A group may have millions of them in memory.
type Outline struct {
	Key Key
	// Job is an index assigned by the store to the record's job.
	Job int32
	// Needed is set if the record is the best at some level or its job is open.
	Needed    bool
	refutes   bool
	candidate uint64  // prefix of its digest
	cost      float64 // 0 if not verified
}

// OutlineOf returns the outline of a record, with Needed unset.
func OutlineOf(key Key, m *tilthv1.Measurement) Outline {
	o := Outline{Key: key, refutes: Disqualifies(m)}
	digest := m.GetCandidate().GetDigest()
	o.candidate, _ = strconv.ParseUint(digest[:min(16, len(digest))], 16, 64) // collisions are negligible
	if Verified(m) {
		o.cost = Cost(m)
	}
	return o
}

// Outlines holds the outlines of a group's records, oldest first.
type Outlines struct {
	All    []Outline
	Jobs   []string // by index
	places map[string]int32
}

// Add adds the outline of a record.
func (o *Outlines) Add(key Key, r *tilthv1.Record) {
	place, known := o.places[r.GetJobId()]
	if !known {
		if o.places == nil {
			o.places = map[string]int32{}
		}
		place = int32(len(o.Jobs))
		o.Jobs, o.places[r.GetJobId()] = append(o.Jobs, r.GetJobId()), place
	}
	outline := OutlineOf(key, r.GetMeasurement())
	outline.Job = place
	o.All = append(o.All, outline)
}

// Need marks the best records and those of open jobs as needed.
func (o *Outlines) Need(isOpen func(job string) bool, isBest func(Key) bool) {
	open := make([]bool, len(o.Jobs))
	for place, job := range o.Jobs {
		open[place] = isOpen(job)
	}
	for i := range o.All {
		o.All[i].Needed = open[o.All[i].Job] || isBest(o.All[i].Key)
	}
}

// Removable returns the keys of the records to remove, in order. all must be sorted oldest first.
func (opts PruneOptions) Removable(all []Outline) (superfluous []Key) {
	refuted := map[uint64]bool{}
	for _, o := range all {
		refuted[o.candidate] = refuted[o.candidate] || o.refutes
	}
	stays := make([]bool, len(all))
	var verified []int
	for i, o := range all {
		stays[i] = o.Needed || i >= len(all)-opts.KeepRecent
		if o.cost > 0 && !refuted[o.candidate] {
			verified = append(verified, i)
		}
	}
	slices.SortStableFunc(verified, func(a, b int) int { return cmp.Compare(all[a].cost, all[b].cost) })
	for _, i := range verified[:min(opts.KeepBest, len(verified))] {
		stays[i] = true
	}
	// A record that refutes a candidate stays as long as a kept record claims that the candidate is good.
	good := map[uint64]bool{}
	for i, o := range all {
		good[o.candidate] = good[o.candidate] || stays[i] && o.cost > 0
	}
	for i, o := range all {
		if !stays[i] && !(o.refutes && good[o.candidate]) {
			superfluous = append(superfluous, o.Key)
		}
	}
	return superfluous
}

// removedAtOnce bounds the records that one transaction removes, since it delays others.
const removedAtOnce = 1000

// Remove removes the superfluous records of a group in chunks and counts removed and kept records. The callback must
// spare and count the records that have become the best in the meantime. An error is the callback's.
func (opts PruneOptions) Remove(all []Outline, remove func(keys []Key) (spared uint64, err error)) (removed, kept uint64, err error) {
	superfluous := opts.Removable(all)
	kept = uint64(len(all) - len(superfluous))
	for keys := range slices.Chunk(superfluous, removedAtOnce) {
		spared, err := remove(keys)
		if err != nil {
			return removed, kept, err
		}
		removed += uint64(len(keys)) - spared
		kept += spared
	}
	return removed, kept, nil
}

const (
	// disturbedRatio is the calibration time, relative to the best known, beyond which a device counts as disturbed.
	disturbedRatio = 1.1
	// fairSamples suffice for a measurement to replace one from a disturbed device.
	fairSamples = 5
	// maxLuck bounds how much slower than measured a candidate can really be. A repeated measurement that is slower
	// still was disturbed between two undisturbed calibrations. It also bounds how far a preference lowers the cost.
	maxLuck = 2
)

// Supersedes reports whether a verified measurement makes its candidate the best of a workload on a target, given the
// best measurement so far, or nil.
//
// Of different candidates the one with the lower cost wins, usually the median latency. Using the upper end of the
// interval would guard against lucky samples, but noise only lengthens samples: on a busy machine even a good
// candidate's interval extends far above its median. Finalists correct for luck: for one candidate, the measurement
// with more samples counts, the later one if equal, so a best that is measured again may become slower. A disturbed
// device never overrides an undisturbed measurement. A preference lasts until a third candidate costs less, or its
// device is suspected.
func Supersedes(m, best *tilthv1.Measurement) bool {
	if best == nil {
		return true
	}
	if m.GetCandidate().GetDigest() != best.GetCandidate().GetDigest() {
		return Cost(m) < Cost(best) && (best.GetPreferredTo() != m.GetCandidate().GetDigest() || best.GetSuspected() != "")
	}
	if best.GetPreferredTo() != "" && m.GetPreferredTo() == "" && best.GetSuspected() == "" {
		return false
	}
	samples, had := len(m.GetSamplesSeconds()), len(best.GetSamplesSeconds())
	if m.GetRemeasured() != "" || best.GetSuspected() != "" {
		had = min(had, samples) // the previous measurement is in doubt, whatever its number of samples
	}
	if disturbed(m) != disturbed(best) {
		return disturbed(best) && samples >= min(had, fairSamples)
	}
	if Cost(m) > maxLuck*Cost(best) {
		return false
	}
	return samples > had || samples == had && m.GetAt().AsTime().After(best.GetAt().AsTime())
}

// Cost returns the quantity to minimize: joules if the measurement has them, which it does exactly on targets with an
// energy objective, else seconds, or less for a preferred candidate.
func Cost(m *tilthv1.Measurement) float64 {
	if joules := m.GetEnergyJoules(); joules > 0 {
		return joules
	}
	return cmp.Or(m.GetPreferredSeconds(), m.GetLatencySeconds())
}

// maxReasonBytes bounds the reason of a preference.
const maxReasonBytes = 1024

// Prefer returns a record by which its candidate is preferred to another one of the same workload, which is faster
// alone, for a reason. It returns false if the other one is faster by more than maxLuck.
func Prefer(r *tilthv1.Record, to *tilthv1.Measurement, at time.Time, reason string) (*tilthv1.Record, bool) {
	preferred := proto.CloneOf(r)
	m := preferred.GetMeasurement()
	if m.GetLatencySeconds() > maxLuck*Cost(to) {
		return nil, false
	}
	m.At, m.Remeasured, m.Suspected = timestamppb.New(at), Cut(reason, maxReasonBytes), ""
	m.PreferredTo, m.PreferredSeconds = to.GetCandidate().GetDigest(), math.Nextafter(min(m.GetLatencySeconds(), Cost(to)), 0)
	// At levels of numerics that do not allow the other candidate, nothing is known.
	own, _ := Level(m.GetCandidate().GetNumerics())
	if needs, _ := Level(to.GetCandidate().GetNumerics()); needs > own {
		m.Candidate.Numerics = to.GetCandidate().GetNumerics()
	}
	return preferred, true
}

// ClearPreference makes a measurement from elsewhere rank by its latency.
func ClearPreference(m *tilthv1.Measurement) { m.PreferredSeconds, m.PreferredTo = 0, "" }

// MeasuresEnergy reports whether a target's objective is energy, by the prefix of its fingerprint.
func MeasuresEnergy(target string) bool {
	of, _ := SplitTarget(target)
	return strings.HasPrefix(of, "energy-")
}

// Disqualifies reports whether a measurement shows that a candidate that passed before must not be used.
func Disqualifies(m *tilthv1.Measurement) bool {
	return m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_WRONG_RESULT || m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_CRASH
}

func disturbed(m *tilthv1.Measurement) bool { return m.GetCalibrationRatio() > disturbedRatio }

// Verified reports whether a measurement passed verification.
func Verified(m *tilthv1.Measurement) bool {
	return m.GetError() == tilthv1.ErrorClass_ERROR_CLASS_NONE
}
