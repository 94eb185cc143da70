package importedseeds_test

import (
	"fmt"
	"log"
	"os"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/tuner/importedseeds"
	"github.com/tilth-dev/tilth/tuner/jobclient"
)

// This example starts a search from AutoTVM's results.
func ExampleRead() {
	file, err := os.Open("testdata/autotvm-arm.log")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	found, err := importedseeds.ReadLog(file, importedseeds.AutoTVM)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range found.Entries {
		fmt.Println(e.Operator, len(e.Tilings))
	}
	for _, r := range found.Refused {
		fmt.Println(r.Count, r.Reason)
	}
	options := jobclient.TuneOptions{
		Options: jobclient.Options{Trials: 200, Numerics: schedule.Default, Seeds: importedseeds.New(found.Entries)},
	}
	fmt.Println(options.Seeds != nil)
	// Output:
	// conv2d 1x112x112x32 k3x3 depthwise -> 32 3
	// conv2d 1x32x32x512 k3x3 depthwise -> 512 1
	// 1 unknown operator or template
	// 1 shapes out of bounds
	// true
}
