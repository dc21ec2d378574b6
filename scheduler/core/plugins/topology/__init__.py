"""Keep the tasks of a group close together: domains of a node tree, tightest sufficient one first."""
