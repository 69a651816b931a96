# scikit-learn ships no types; the published scikit-learn-stubs lacks get_tags, which came with 1.6.
