/** Which node of a graph is chosen, beside the nodes: choosing another does not touch the rest. */
import { createContext, useContext } from 'react'

interface Choice {
  selected: string | undefined
  choose: (id: string | undefined) => void
}
export const GraphChoice = createContext<Choice>({ selected: undefined, choose: () => undefined })
export const useChoice = () => useContext(GraphChoice)
