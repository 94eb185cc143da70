package records_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/tilth-dev/tilth/records"
)

// storeKind describes a store under test.
type storeKind struct {
	// open opens the store in a folder, creating it if necessary.
	open func(folder string) (records.Store, error)
	// prepare, unless nil, prepares a new folder, whose files the test removes at its end.
	prepare func(t tester, folder string)
	// keeps is set if the store persists across reopening.
	keeps bool
	// slow, unless empty, is the reason to leave the store out of the quick tier.
	slow string
}

// check runs the contract of stores.
func (k storeKind) check(t *testing.T) {
	if k.slow != "" && testing.Short() {
		t.Skip("slow: " + k.slow)
	}
	for name, test := range map[string]func(*testing.T, storeKind){
		"the best is the fastest verified record":       bestIsTheFastestVerifiedRecord,
		"each level of numerics has its best":           bestOfEachLevelOfNumerics,
		"a level without a record has none":             aLevelWithoutARecordHasNone,
		"a best that is refuted gives way to the next":  bestThatIsRefutedGivesWayToTheNext,
		"a best in doubt stays until measured again":    aBestInDoubtStandsUntilItIsMeasuredAgain,
		"the store says what a model of it says":        theStoreSaysWhatAModelOfItSays,
		"a list goes through a group in order":          aListGoesThroughAGroupInOrder,
		"best records come in pages":                    bestRecordsComeInPages,
		"groups and keys come in pages":                 groupsAndKeysComeInPages,
		"some records are found by their keys":          someRecordsAreFoundByTheirKeys,
		"known sums up a workload on a target":          knownSumsUpAWorkloadOnATarget,
		"private records are met by their owner's name": privateRecordsAreMetByTheirOwnersName,
		"a job says whether it is private":              aJobSaysWhetherItIsPrivate,
		"jobs that somebody sees come in pages":         jobsThatSomebodySeesComeInPages,
		"a page ends among jobs that nobody sees":       aPageEndsAmongJobsThatNobodySees,
		"pruning keeps what it says":                    pruningKeepsWhatItSays,
		"a pruned record leaves its event":              aPrunedRecordLeavesItsEvent,
		"an import skips what is there":                 anImportSkipsWhatIsThere,
		"an import that fails leaves nothing":           anImportThatFailsLeavesNothing,
		"events are read from any and up to any":        eventsAreReadFromAnyAndUpToAny,
		"two measurements of an instant are two":        twoMeasurementsOfAnInstantAreTwo,
		"a job is what was stored of it last":           aJobIsWhatWasStoredOfItLast,
		"jobs come in pages":                            jobsComeInPages,
		"a dropped job leaves its records":              aDroppedJobLeavesItsRecords,
		"a request is its owner's":                      aRequestIsItsOwners,
		"a batch is under way, closed or gone":          aBatchIsUnderWayClosedOrGone,
		"agents and devices are kept by name":           agentsAndDevicesAreKeptByName,
		"what is returned belongs to the caller":        whatIsReturnedBelongsToTheCaller,
		"writes are stored in the order of the commits": writesAreStoredInTheOrderOfTheCommits,
		"readers see whole writes":                      readersSeeWholeWrites,
		"a store that is closed takes nothing":          aStoreThatIsClosedTakesNothing,
		"a life has a name of its own":                  generationHasAUniqueName,
	} {
		t.Run(name, func(t *testing.T) { test(t, k) })
	}
}

// fresh returns an empty store.
func fresh(t *testing.T, k storeKind) records.Store {
	t.Helper()
	return k.opened(t, k.folder(t))
}

// tester is implemented by *testing.T and *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
	Context() context.Context
}

// folder returns a new folder.
func (k storeKind) folder(t tester) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "store")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if k.prepare != nil {
		k.prepare(t, folder)
	}
	return folder
}

func (k storeKind) opened(t tester, folder string) records.Store {
	t.Helper()
	s, err := k.open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// reopened closes and reopens a store that persists, and returns other stores unchanged.
func (k storeKind) reopened(t tester, s records.Store, folder string) records.Store {
	t.Helper()
	if !k.keeps {
		return s
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return k.opened(t, folder)
}

func commit(t *testing.T, s records.Store, w *records.Write) {
	t.Helper()
	if err := s.Commit(w).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// missing fails the test unless err is records.ErrNotFound.
func missing(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, records.ErrNotFound) {
		t.Errorf("%s: %v", what, err)
	}
}
