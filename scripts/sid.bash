# Sourced by scripts that unpack packages of Debian's unstable distribution beside the system.

# sid_options FOLDER sets options that give apt-get and apt-cache separate state in the folder, and downloads the
# package lists.
sid_options() {
	local apt=$1 mirror
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | awk '!/security/ && !seen++')
	rm -rf "$apt"
	mkdir -p "$apt"/{lists/partial,cache/archives/partial,packages}
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:?no archive of Debian is configured} sid main" >"$apt/sources.list"
	touch "$apt/status"
	options=(-qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State=$apt"
		-o "Dir::State::status=$apt/status" -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
	apt-get "${options[@]}" update
}
