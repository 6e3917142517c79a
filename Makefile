# Developers' targets come later in this file's life; for now: build.
BUILD ?= build
all:
	cmake -S . -B $(BUILD) -G Ninja
	cmake --build $(BUILD)
