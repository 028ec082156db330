"""The page that people look at: server-rendered, without a build step, over the verbs of `Memory`."""

from wellworn.server.page.pages import add_page as add_page
