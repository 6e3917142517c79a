/* Stands in for a folder that has no source yet: a static library needs one. */
typedef int pl_empty_translation_unit;
