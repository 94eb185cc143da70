package tracker_test

const trackerProcessEnv = "TILTH_TEST_TRACKER"

func trackerProcess(string) {}
